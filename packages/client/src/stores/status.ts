import type { ClientStatus } from '../events/events.js'
import { clientOf, type GivenClient } from './client.js'
import type { Store } from './store.js'

const UNKNOWN: ClientStatus = {
  state: 'idle',
  attempt: undefined,
  retryInMs: undefined,
  lost: false,
  queueLength: 0,
  limits: undefined,
  lastError: undefined,
}

/** `client.status`. It does not connect. */
export function statusStore(given: GivenClient): Store<ClientStatus> {
  return {
    initial: UNKNOWN,
    getSnapshot: () => clientOf(given).status,
    subscribe(onChange) {
      let ends: (() => void)[] = []
      const end = () => {
        for (const end of ends) end()
      }
      const begin = () => {
        const client = clientOf(given)
        const changed = () => {
          // Another `setup` closes this client.
          if (clientOf(given) !== client) {
            end()
            begin()
          }
          onChange()
        }
        ends = (['state', 'connected', 'lost'] as const).map((event) => client.on(event, changed))
      }
      begin()
      return end
    },
  }
}
