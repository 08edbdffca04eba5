// Lets every user write to the volumes that kube-controller-manager makes.
//
// Its provisioner gives a volume's folder to root alone, and Kubernetes does not change the owner of
// folders of the machine for a pod's fsGroup, so without this only root could use a claim.
package main

import (
	"log"
	"os"
	"path/filepath"
	"syscall"
)

const volumes = "/tmp/hostpath_pv"

func main() {
	if err := os.MkdirAll(volumes, 0o755); err != nil {
		log.Fatal(err)
	}
	notices, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := syscall.InotifyAddWatch(notices, volumes, syscall.IN_CREATE); err != nil {
		log.Fatal(err)
	}
	// A pod may have given its volume other permissions since: sshd takes no root that all may write.
	seen := map[string]bool{}
	for buffer := make([]byte, 65536); ; {
		folders, err := os.ReadDir(volumes)
		if err != nil {
			log.Fatal(err)
		}
		for _, folder := range folders {
			if seen[folder.Name()] {
				continue
			}
			seen[folder.Name()] = true
			if err := os.Chmod(filepath.Join(volumes, folder.Name()), 0o777); err != nil && !os.IsNotExist(err) {
				log.Print(err)
			}
		}
		// What appears from here on is told by the next read.
		if _, err := syscall.Read(notices, buffer); err != nil && err != syscall.EINTR {
			log.Fatal(err)
		}
	}
}
