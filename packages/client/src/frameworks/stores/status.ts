import type { ClientStatus } from '../../core/events/events.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'
import type { Store } from './store.js'
import { whileClient } from './while-client.js'

/** With all members: Vue makes its refs of them. */
const UNKNOWN: Required<ClientStatus> = {
  state: 'idle',
  attempt: undefined,
  retryInMs: undefined,
  code: undefined,
  lost: false,
  queueLength: 0,
  connection: undefined,
  limits: undefined,
  lastError: undefined,
}

/** `client.status`. It does not connect. */
export function statusStore(given: GivenClient): Store<ClientStatus> {
  return {
    initial: UNKNOWN,
    getSnapshot: () => clientOf(given).status,
    subscribe: (onChange) =>
      whileClient(given, (client) => {
        onChange()
        return client.on('status', onChange)
      }),
  }
}
