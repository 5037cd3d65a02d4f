package bench

import (
	"fmt"
	"io"
	"net"
	"os"
)

// proxyRole is the peer of the whole relay: bytes from one TCP connection to
// another and nothing else. Between two of them io.Copy lets the kernel move
// the bytes, so there is no cheaper hop of its kind.
const proxyRole = "tcp-proxy"

// serveProxy carries each connection to the target, on one of its own, until
// standard input ends. It prints its address.
func serveProxy(target string) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go carry(from.(*net.TCPConn), target)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
}

func carry(from *net.TCPConn, target string) {
	defer from.Close()
	conn, err := net.Dial("tcp4", target)
	if err != nil {
		return
	}
	to := conn.(*net.TCPConn)
	defer to.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		io.Copy(from, to)
		from.CloseWrite()
	}()
	io.Copy(to, from)
	to.CloseWrite()
	<-back
}
