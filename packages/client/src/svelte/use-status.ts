import type { Readable } from 'svelte/store'
import type { ClientStatus } from '../events/events.js'
import { statusStore } from '../stores/status.js'
import { type ClientOption, givenClient } from './client.js'
import { readable } from './readable.js'

/** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
export function useStatus({ client: given }: ClientOption = {}): Readable<ClientStatus> {
  const client = givenClient(given)
  return readable(undefined, () => statusStore(client))
}
