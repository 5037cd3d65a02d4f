package node

// Move has the connection of the tunnel that is up moved to another port.
func (c *Client) Move() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link.mover.ask()
}
