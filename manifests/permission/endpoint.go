package permission

import "net/netip"

// ParseEndpoint reads the IP address and the port to which connections are to go:
// "127.0.0.1:8443", "[::1]:8443". An IPv4 address is never returned as an IPv6 one.
func ParseEndpoint(text string) (netip.AddrPort, error) {
	endpoint, err := netip.ParseAddrPort(text)
	if err != nil || endpoint.Port() == 0 || endpoint.Addr().Zone() != "" {
		return netip.AddrPort{}, &Error{
			What: "connect", Text: text, Problem: "is not an address with a port",
			Fix: "write an IP address and a port, such as 127.0.0.1:8443 or [::1]:8443",
		}
	}
	return netip.AddrPortFrom(endpoint.Addr().Unmap(), endpoint.Port()), nil
}
