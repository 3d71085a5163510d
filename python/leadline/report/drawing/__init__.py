"""What every chart and page is drawn with: axes, layers, colours, files."""
