"""The pieces a method is composed of: small records of pure functions over pytrees."""
