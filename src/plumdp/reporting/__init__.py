"""Reports of certificates: what they show, as one HTML file, in notebooks, and from saved results."""
