"""A target probed gently for hours or months: has it changed?"""
