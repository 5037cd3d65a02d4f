package contract

// ClusterConfigurationRequest is the request with which the relay pulls the
// cluster configuration, by default getClusterConfig (contract §6.3). The whole
// request is secret. Its answer is read by ReadClusterConfiguration.
type ClusterConfigurationRequest struct {
	Identity IdentityCredential
}

// ReadClusterConfigurationRequest reads the request body.
func ReadClusterConfigurationRequest(body []byte) (ClusterConfigurationRequest, error) {
	return readAs[ClusterConfigurationRequest]("cluster configuration request", body, secretBearing)
}

func (x *ClusterConfigurationRequest) shape() valueReader {
	return object(required("identity", readIdentityCredential(&x.Identity)))
}

// Validate returns one named reason for each violation.
func (x ClusterConfigurationRequest) Validate() []string { return reasonsOf(x.judge) }

func (x ClusterConfigurationRequest) judge(v *verdict) { v.in("identity", x.Identity) }

// AppendJSON appends the request body.
func (x ClusterConfigurationRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("identity", x.Identity)
	return w.end()
}
