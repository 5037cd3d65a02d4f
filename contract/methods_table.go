package contract

// Names of methods that code refers to. The forwarded ones that nobody treats
// specially stand in the catalogue alone.
const (
	MethodRegisterPalletRuntimeSession = "registerPalletRuntimeSession"
	MethodApplyDNSLeaseRenewal         = "applyRuntimeNetworkDnsLeaseRenewal"

	MethodRegisterCloudlyClientSession = "registerCloudlyClientSession"
	MethodRegisterClusterRelay         = "registerClusterRelay"
	MethodHoldDNSLeaseRenewals         = "holdRuntimeNetworkDnsLeaseRenewals"
	MethodApplyVPNNetwork              = "applyClusterVpnNetwork"
	MethodGetVPNNetwork                = "getClusterVpnNetwork"
	MethodPushRouteTable               = "pushClusterRouteTable"
	MethodGetRouteTable                = "getClusterRouteTable"
	MethodRegisterIngress              = "registerClusterIngress"
	MethodGetIngressRouteTable         = "getClusterIngressRouteTable"
	MethodPushIngressRouteTableChanged = "pushClusterIngressRouteTableChanged"
	MethodGetTrafficStatistics         = "getClusterTrafficStatistics"
	MethodBackupService                = "backupClusterService"
	MethodRestoreService               = "restoreClusterService"
	MethodPruneNodeArchive             = "pruneClusterNodeArchive"
	MethodGetCorestoreInventory        = "getClusterCorestoreInventory"
	MethodGetCorestoreLegacyResources  = "getClusterCorestoreLegacyResources"
	MethodPrepareIsolatedRestore       = "prepareIsolatedRestoreOnNode"
	MethodStageIsolatedRestoreArchive  = "stageIsolatedRestoreArchive"
	MethodGetIsolatedRestoreProgress   = "getIsolatedRestoreProgressOnNode"
	MethodExecuteIsolatedRestore       = "executeIsolatedRestoreOnNode"
	MethodCleanupIsolatedRestore       = "cleanupIsolatedRestoreOnNode"
	MethodBackupDatabaseClosure        = "backupServiceDatabaseClosure"
	MethodRestoreDatabaseClosure       = "restoreServiceDatabaseClosure"
	MethodGetPlatformDesiredState      = "getClusterPlatformDesiredState"
	MethodUpdatePlatformBindingStatus  = "updatePlatformBindingStatus"
	MethodGetSecretRecipientState      = "getSecretRecipientEnrollmentState"
	MethodBeginSecretRecipient         = "beginSecretRecipientEnrollment"
	MethodCompleteSecretRecipient      = "completeSecretRecipientEnrollment"
	MethodGetControlCredential         = "getCorestoreControlCredentialMaterial"
	MethodPublishCorestoreCredential   = "publishCorestoreCredentialMaterial"
)

// Names that the seeds leave open and configuration can change. OWN defaults
// (contract O4, O11).
const (
	DefaultMethodExchangeIdentity  = "getIdentityByToken"
	DefaultMethodPushConfiguration = "pushClusterConfig"
	DefaultMethodGetConfiguration  = "getClusterConfig"
)

// catalogueInOrder is contract §8.1 to §8.4. Of the names that configuration
// can change it holds the defaults.
var catalogueInOrder = []Method{
	// §8.1 node → relay → Cloudly
	{MethodRegisterPalletRuntimeSession, Forwarded, NodeToRelay | RelayToCloudly},
	{"reportRuntimeAssignmentObservation", Forwarded, NodeToRelay | RelayToCloudly},
	{"reportRuntimeAssignmentTerminalReceipt", Forwarded, NodeToRelay | RelayToCloudly},
	{"getRuntimeRegistryCredential", Forwarded, NodeToRelay | RelayToCloudly},
	{"getRuntimeManagedVpnCredential", Forwarded, NodeToRelay | RelayToCloudly},
	{"reportRuntimeNetworkProtection", Forwarded, NodeToRelay | RelayToCloudly},
	{"reportRuntimeNetworkProjectionApplication", Forwarded, NodeToRelay | RelayToCloudly},
	{"getRuntimeSecretRecipientState", Forwarded, NodeToRelay | RelayToCloudly},
	{"beginRuntimeSecretRecipientEnrollment", Forwarded, NodeToRelay | RelayToCloudly},
	{"completeRuntimeSecretRecipientEnrollment", Forwarded, NodeToRelay | RelayToCloudly},
	{"getRuntimeAssignmentSecretMaterial", Forwarded, NodeToRelay | RelayToCloudly},
	{"reportRuntimeAssignmentLogs", Forwarded, NodeToRelay | RelayToCloudly},

	// §8.2 Cloudly → relay → node
	{"applyRuntimeAssignment", Forwarded, CloudlyToRelay | RelayToNode},
	{"applyRuntimeLocalStorageClaim", Forwarded, CloudlyToRelay | RelayToNode},
	{MethodApplyDNSLeaseRenewal, Forwarded, CloudlyToRelay | RelayToNode},
	{"readRuntimeAssignmentStats", Forwarded, CloudlyToRelay | RelayToNode},

	// §8.3 never through the relay: the local controller's and the node's own
	{"openRuntimeAssignmentExec", NeverForwarded, 0},
	{"resizeRuntimeAssignmentExec", NeverForwarded, 0},
	{"closeRuntimeAssignmentExec", NeverForwarded, 0},
	{"readRuntimeLocalVolumeArchive", NeverForwarded, 0},
	{"writeRuntimeLocalVolumeArchive", NeverForwarded, 0},
	{"bindPalletLocalRuntimeController", NeverForwarded, 0},
	{"preparePalletNodeEnrollment", NeverForwarded, 0},
	{"bindPalletNodeEnrollment", NeverForwarded, 0},
	{"activatePalletNodeEnrollment", NeverForwarded, 0},
	{"bindPalletNodeRuntimeBinding", NeverForwarded, 0},
	{"readPalletNodeRuntimeBinding", NeverForwarded, 0},
	// an administrator's, addressed to Cloudly (also §5.1)
	{"enableClusterRelay", NeverForwarded, 0},
	{"disableClusterRelay", NeverForwarded, 0},
	{"getClusterRelayRegistrations", NeverForwarded, 0},
	{"mutateClusterRelayCredential", NeverForwarded, 0},
	{"retireLegacyClusterRelayCredential", NeverForwarded, 0},
	{"getClusterRelayCredential", NeverForwarded, 0},
	{"exportClusterRelayAuthorization", NeverForwarded, 0},
	{"getClusterRelayAuthorizationExports", NeverForwarded, 0},
	{"setClusterNodeCorestoreEndpoint", NeverForwarded, 0},
	{"setClusterNodeCorestoreObjectStorageEndpoint", NeverForwarded, 0},
	{"setClusterNodeCorestoreDatabaseEndpoint", NeverForwarded, 0},
	{"designateClusterIngress", NeverForwarded, 0},
	{"getClusterIngressDesignation", NeverForwarded, 0},
	{"getRuntimeLocalStorageClaims", NeverForwarded, 0},
	// superseded
	{"executeServiceBackup", NeverForwarded, 0},
	{"executeServiceRestore", NeverForwarded, 0},
	{"coreflowPruneNodeArchive", NeverForwarded, 0},
	{"coreflowGetCorestoreInventory", NeverForwarded, 0},
	{"uploadBackupArchiveObject", NeverForwarded, 0},
	{"downloadBackupArchiveObject", NeverForwarded, 0},

	// §8.4 the relay's own
	{MethodRegisterCloudlyClientSession, Own, RelayToCloudly},
	{MethodRegisterClusterRelay, Own, RelayToCloudly},
	{MethodHoldDNSLeaseRenewals, Own, CloudlyToRelay},
	{MethodApplyVPNNetwork, Own, CloudlyToRelay},
	{MethodGetVPNNetwork, Own, RelayToCloudly},
	{MethodPushRouteTable, Own, CloudlyToRelay},
	{MethodGetRouteTable, Own, RelayToCloudly},
	{MethodRegisterIngress, Own, IngressToRelay | RelayToCloudly},
	{MethodGetIngressRouteTable, Own, IngressToRelay},
	{MethodPushIngressRouteTableChanged, Own, RelayToIngress},
	{MethodGetTrafficStatistics, Own, CloudlyToRelay | RelayToIngress},
	{MethodBackupService, Own, CloudlyToRelay},
	{MethodRestoreService, Own, CloudlyToRelay},
	{MethodPruneNodeArchive, Own, CloudlyToRelay},
	{MethodGetCorestoreInventory, Own, CloudlyToRelay},
	{MethodGetCorestoreLegacyResources, Own, CloudlyToRelay},
	{MethodPrepareIsolatedRestore, Own, CloudlyToRelay},
	{MethodStageIsolatedRestoreArchive, Own, CloudlyToRelay},
	{MethodGetIsolatedRestoreProgress, Own, CloudlyToRelay},
	{MethodExecuteIsolatedRestore, Own, CloudlyToRelay},
	{MethodCleanupIsolatedRestore, Own, CloudlyToRelay},
	{MethodBackupDatabaseClosure, Own, RelayToCloudly},
	{MethodRestoreDatabaseClosure, Own, RelayToCloudly},
	{MethodGetPlatformDesiredState, Own, RelayToCloudly},
	{MethodUpdatePlatformBindingStatus, Own, RelayToCloudly},
	{MethodGetSecretRecipientState, Own, RelayToCloudly},
	{MethodBeginSecretRecipient, Own, RelayToCloudly},
	{MethodCompleteSecretRecipient, Own, RelayToCloudly},
	{MethodGetControlCredential, Own, RelayToCloudly},
	{MethodPublishCorestoreCredential, Own, RelayToCloudly},
	{DefaultMethodExchangeIdentity, Own, RelayToCloudly},
	{DefaultMethodPushConfiguration, Own, CloudlyToRelay},
	{DefaultMethodGetConfiguration, Own, RelayToCloudly},
}

var catalogue = func() map[string]Method {
	byName := make(map[string]Method, len(catalogueInOrder))
	for _, m := range catalogueInOrder {
		byName[m.Name] = m
	}
	return byName
}()
