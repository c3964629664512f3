# Shell functions for the scripts engine and build, which source this file.

# has_sys_resource succeeds if CAP_SYS_RESOURCE (bit 24) is in the capability bounding set.
has_sys_resource() {
  local bounding
  bounding=$(awk '/^CapBnd/ { print $2 }' /proc/self/status)
  (((16#$bounding >> 24) & 1))
}
