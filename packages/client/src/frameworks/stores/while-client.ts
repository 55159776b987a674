import type { WebMQClient } from '../../core/client.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'

/**
 * Calls `begin` with the client or, without a given one, with that of `setup`, and again after another `setup`.
 * @param begin Returns what is called before the next time, and at the end.
 * @returns Ends it.
 */
export function whileClient(given: GivenClient, begin: (client: WebMQClient) => () => void): () => void {
  const client = clientOf(given)
  let end = begin(client)
  // `setup` tells the client that it replaces.
  const endEvents = client.on('status', () => {
    if (clientOf(given) === client) return
    endEvents()
    end()
    end = whileClient(given, begin)
  })
  return () => {
    endEvents()
    end()
  }
}
