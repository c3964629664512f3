# What engine and build share; to be sourced.

# has_sys_resource: may a process here hold CAP_SYS_RESOURCE (bit 24)?
has_sys_resource() {
  local bounding
  bounding=$(awk '/^CapBnd/ { print $2 }' /proc/self/status)
  (((16#$bounding >> 24) & 1))
}
