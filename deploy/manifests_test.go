// Package deploy checks the Kubernetes manifests of this folder.
package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// objects decodes every object of the manifests into the type that the API
// server would decode it into. An unknown or misspelled field is an error.
func objects(t *testing.T) map[string]any {
	t.Helper()
	files, err := filepath.Glob("k8s/*.yaml")
	require.NoError(t, err)
	all := map[string]any{}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var meta metav1.PartialObjectMetadata
			require.NoError(t, yaml.Unmarshal(part, &meta), file)
			var object any
			switch meta.APIVersion + " " + meta.Kind {
			case "v1 Service":
				object = new(corev1.Service)
			case "v1 ConfigMap":
				object = new(corev1.ConfigMap)
			case "apps/v1 StatefulSet":
				object = new(appsv1.StatefulSet)
			case "policy/v1 PodDisruptionBudget":
				object = new(policyv1.PodDisruptionBudget)
			case "batch/v1 Job":
				object = new(batchv1.Job)
			default:
				require.Fail(t, "an object of an unknown kind", "%s: %s %s", file, meta.APIVersion, meta.Kind)
			}
			require.NoError(t, yaml.UnmarshalStrict(part, object), file)
			all[meta.Kind+"/"+meta.Name] = object
		}
	}
	return all
}

func TestManifests(t *testing.T) {
	all := objects(t)
	budget, ok := all["PodDisruptionBudget/quorate-lock"].(*policyv1.PodDisruptionBudget)
	require.True(t, ok)
	config, ok := all["ConfigMap/lock-config"].(*corev1.ConfigMap)
	require.True(t, ok)
	assert.Contains(t, config.Data["redis.conf"], "maxmemory-policy noeviction")
	for _, node := range []string{"a", "b", "c"} {
		set, ok := all["StatefulSet/lock-"+node].(*appsv1.StatefulSet)
		require.True(t, ok, node)
		assert.EqualValues(t, 1, *set.Spec.Replicas, "a node is never scaled")
		labels := set.Spec.Template.Labels
		assert.Equal(t, set.Spec.Selector.MatchLabels, labels)
		for key, value := range budget.Spec.Selector.MatchLabels {
			assert.Equal(t, value, labels[key], "the budget covers every node")
		}
		service, ok := all["Service/"+set.Spec.ServiceName].(*corev1.Service)
		require.True(t, ok, node)
		assert.Equal(t, labels, service.Spec.Selector)
		assert.NotNil(t, set.Spec.Template.Spec.Affinity.PodAntiAffinity)
		container := set.Spec.Template.Spec.Containers[0]
		mounts := []string{container.VolumeMounts[0].Name, container.VolumeMounts[1].Name}
		assert.True(t, slices.Contains(mounts, set.Spec.VolumeClaimTemplates[0].Name), "the node keeps its data")
		assert.Equal(t, config.Name, set.Spec.Template.Spec.Volumes[0].ConfigMap.Name)
	}
	job, ok := all["Job/quorate-check"].(*batchv1.Job)
	require.True(t, ok)
	nodes := job.Spec.Template.Spec.Containers[0].Env[0].Value
	assert.Equal(t, 3, len(strings.Split(nodes, ",")))
}

// Every manifest but the Job is applied by kustomize.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile("k8s/kustomization.yaml")
	require.NoError(t, err)
	var list struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &list))
	assert.Equal(t, []string{"common.yaml", "lock-a.yaml", "lock-b.yaml", "lock-c.yaml"}, list.Resources)
}
