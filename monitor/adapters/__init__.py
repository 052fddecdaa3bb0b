"""Where libraries meet the ports: one file a technology and role, named `technology_role.py`."""
