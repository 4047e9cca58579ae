"""Several machines, as processes of this one."""
