"""Tables, figures and pages: what `study` has computed, as Markdown, CSV, LaTeX, HTML and SVG."""
