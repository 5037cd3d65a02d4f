package contract

// maximumLegacyServices bounds what is read of a legacy inventory. OWN: it
// bounds memory. The plan that adopts them holds at most as many entries.
const maximumLegacyServices = 4096

// LegacyServices is the list of a legacy inventory: services sorted by id, each
// with one or two resources, a database before a bucket (contract §12.3). Order
// and vocabulary are judged; the list goes on as the bytes that came.
//
// OWN: the seeds name databaseName, bucketName, retention, adoption and the
// members of adoption. serviceId, resources and capability are this product's
// reading of "every service … with one or two entries".
type LegacyServices struct {
	List    []LegacyService
	Encoded Raw // the list as it came; nil in one that was made here
}

// LegacyService is one service and what it owns from before release 32.
type LegacyService struct {
	ServiceID string // canonical identifier
	Resources []LegacyResource
}

// LegacyCapability says what a legacy resource is.
type LegacyCapability string

// The capabilities, in the order in which a service lists them.
const (
	LegacyDatabase      LegacyCapability = "database"
	LegacyObjectStorage LegacyCapability = "objectstorage"
)

func readLegacyServices(x *LegacyServices) valueReader {
	return kept(&x.Encoded, list(&x.List, maximumLegacyServices, readLegacyService))
}

func readLegacyService(x *LegacyService) valueReader {
	return object(
		required("serviceId", text(&x.ServiceID)),
		// One more than the rule allows, so that the rule can be named.
		required("resources", list(&x.Resources, 3, readLegacyResource)),
	)
}

func (x LegacyServices) judge(v *verdict) {
	previous := ""
	for i, service := range x.List {
		v.enterIndex(i)
		// Identifiers are ASCII, whose byte order is the order of code units.
		v.require(service.ServiceID > previous, "serviceId", "is not after the one before it")
		service.judge(v)
		v.leave()
		previous = service.ServiceID
	}
}

func (x LegacyService) judge(v *verdict) {
	v.identifier("serviceId", x.ServiceID)
	v.require(len(x.Resources) == 1 || len(x.Resources) == 2, "resources", "does not have one or two elements")
	inEach(v, "resources", x.Resources)
	if len(x.Resources) == 2 {
		v.require(x.Resources[0].Capability == LegacyDatabase && x.Resources[1].Capability == LegacyObjectStorage,
			"resources", "is not a database before an objectstorage")
	}
}

// AppendJSON appends the list as it came, or from its members when it was made
// here.
func (x LegacyServices) AppendJSON(dst []byte) []byte {
	if x.Encoded != nil {
		return x.Encoded.AppendJSON(dst)
	}
	dst = append(dst, '[')
	for i, service := range x.List {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = service.AppendJSON(dst)
	}
	return append(dst, ']')
}

// AppendJSON appends the service.
func (x LegacyService) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("serviceId", x.ServiceID)
	writeList(&w, "resources", x.Resources)
	return w.end()
}
