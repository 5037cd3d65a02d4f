package demo

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
)

// readCredential reads the VPN credential of a node as Cloudly answers it (contract §7.4).
// The pallet has compared session and projection with what was sent.
func readCredential(answer []byte) (c node.Credential, err error) {
	o, err := readExactly(answer, "session", "projection", "transport", "hub", "authorityId", "serverPublicKey", "clientKeyPair", "expiresAt")
	if err != nil {
		return c, err
	}
	if transport, err := o.text("transport"); err != nil || transport != "quic" {
		return c, errors.New("transport: is not quic")
	}
	if c.Hub, err = readHub(o["hub"]); err != nil {
		return c, fmt.Errorf("hub: %w", err)
	}
	if c.AuthorityID, err = o.text("authorityId"); err != nil {
		return c, err
	}
	server, err := o.text("serverPublicKey")
	if err != nil {
		return c, err
	}
	if c.HubKey, err = node.ParsePublicKey(server); err != nil {
		return c, fmt.Errorf("serverPublicKey: %w", err)
	}
	if c.Key, err = readKeyPair(o["clientKeyPair"]); err != nil {
		return c, fmt.Errorf("clientKeyPair: %w", err)
	}
	expires, err := o.integer("expiresAt", contract.MaximumSafeInteger)
	c.ExpiresAt = time.UnixMilli(expires)
	return c, err
}

// readHub reads the address and the port of a hub.
func readHub(value []byte) (hub netip.AddrPort, err error) {
	o, err := readExactly(value, "address", "port")
	if err != nil {
		return hub, err
	}
	text, err := o.text("address")
	if err != nil {
		return hub, err
	}
	address, ok := contract.ParseIPv4(text)
	if !ok {
		return hub, errors.New("address: is not an IPv4 literal")
	}
	port, err := o.integer("port", 1<<16-1)
	return netip.AddrPortFrom(address, uint16(port)), err
}

// readKeyPair reads a private key, and compares its public half with what stands beside it.
func readKeyPair(value []byte) (key node.PrivateKey, err error) {
	o, err := readExactly(value, "publicKey", "privateKey")
	if err != nil {
		return key, err
	}
	private, err := o.text("privateKey")
	if err != nil {
		return key, err
	}
	if key, err = node.ParsePrivateKey(private); err != nil {
		return key, fmt.Errorf("privateKey: %w", err)
	}
	if public, err := o.text("publicKey"); err != nil || public != key.Public().String() {
		return key, errors.New("publicKey: is not the other half of the private one")
	}
	return key, nil
}
