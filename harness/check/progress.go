package check

// Reasons of the condition Progressing.
const (
	setAvailable     = "NewReplicaSetAvailable"
	setUpdated       = "ReplicaSetUpdated"
	setCreateError   = "ReplicaSetCreateError"
	deadlineExceeded = "ProgressDeadlineExceeded"
	deploymentPaused = "DeploymentPaused"
	resumed          = "DeploymentResumed"
)
