import type { WebMQClient } from '../client.js'
import type { WebSocketConstructor } from '../client-options.js'
import type { ClientCore, ClientPart } from '../client-part.js'
import type { Gap } from '../events/events.js'
import { clientOf, type GivenClient } from '../of-client.js'
import { socketClassOf } from '../options.js'
import { Panel } from './panel.js'
import { Traffic } from './traffic.js'
import { Trouble } from './trouble.js'

const MAX_GAPS = 20

/**
 * Adds a panel to the page that shows what a client does, and rehearses trouble: for development. Call it right after
 * `setup`: it watches the connections that are opened from then on.
 *
 * @param options `client`: default that of `setup`.
 * @returns Removes the panel, and ends every trouble. Without a page, as on a server, it does nothing.
 * @throws {WebMQError} `E_OPTION_INVALID` if there is no client.
 */
export function devtools({ client }: { readonly client?: GivenClient } = {}): () => void {
  const watched = clientOf(client)
  if (typeof document === 'undefined') return () => undefined
  return watched.add((core) => new Devtools(watched, core)).remove
}

class Devtools implements ClientPart {
  readonly #panel: Panel
  readonly remove: () => void

  constructor(client: WebMQClient, core: ClientCore) {
    const traffic = new Traffic()
    const trouble = new Trouble({
      sent: (frame) => traffic.sent(frame),
      received: (frame) => traffic.received(frame),
      down: () => traffic.down(),
      reopen: () => {
        if (client.state === 'closed' && client.status.lastError?.code === 'E_TOKEN_INVALID') void client.open()
      },
    })
    // The client reads its options again for each connection.
    const options: { WebSocket?: WebSocketConstructor | undefined } = core.options
    const given = options.WebSocket
    options.WebSocket = trouble.watch(() => socketClassOf({ ...(given && { WebSocket: given }) }))

    const gaps: (Gap & { readonly atMs: number })[] = []
    const panel = new Panel({ client, traffic, trouble, gaps })
    this.#panel = panel
    const removeHandlers = [
      client.on('gap', (gap) => {
        gaps.push({ ...gap, atMs: Date.now() })
        if (gaps.length > MAX_GAPS) gaps.shift()
      }),
      client.on('status', () => panel.refresh()),
    ]
    document.documentElement.append(panel.element)
    this.remove = () => {
      options.WebSocket = given
      trouble.stop()
      for (const remove of removeHandlers) remove()
      panel.remove()
    }
  }

  up(): void {
    this.#panel.refresh()
  }
}
