import type { ToRefs } from 'vue'
import type { ClientStatus } from '../events/events.js'
import { statusStore } from '../stores/status.js'
import { useGivenClient } from './client.js'
import { useSnapshot } from './use-snapshot.js'

/** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
export function useStatus(): ToRefs<ClientStatus> {
  const client = useGivenClient()
  return useSnapshot(() => statusStore(client))
}
