package mutants

import "slices"

// list is every wrong relay.
var list = slices.Concat(session, endurance, carriage, escrows, ingresses, policies, hubs, escrowed, ingressRows, paths, hubRows, namespaces, soaked)
