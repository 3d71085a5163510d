"""The direct method (KM83): how fast are plain files read, written and rewritten?"""
