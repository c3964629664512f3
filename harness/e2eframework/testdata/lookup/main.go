// Command lookup resolves the host name in its argument. If that fails, the exit status is 1.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	addresses, err := net.LookupHost(os.Args[1]) //nolint:noctx // the resolver limits the time
	fmt.Println(addresses, err)
	if err != nil {
		os.Exit(1)
	}
}
