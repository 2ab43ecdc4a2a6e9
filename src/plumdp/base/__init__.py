"""The ground that every room stands on: it imports nothing of plumdp but itself."""
