import type { WebMQClient } from '../../core/client.js'
import type { WebSocketConstructor } from '../../core/client-options.js'
import type { ClientCore, ClientPart } from '../../core/client-part.js'
import type { Gap } from '../../core/events/events.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'
import { socketClassOf } from '../../core/options.js'
import { Panel } from './panel.js'
import { Traffic } from './traffic.js'
import { Trouble } from './trouble.js'

const MAX_GAPS = 20

/** The panel of the client of `setup`. */
let ofSetup: Devtools | undefined

/**
 * Adds a panel to the page that shows what a client does, and rehearses trouble: for development. Call it right after
 * `setup`: it watches the connections that are opened from then on.
 *
 * A module that a dev server replaces calls `setup` and this again: the new client's panel takes the place of the old one's.
 *
 * @param options `client`: default that of `setup`.
 * @returns Removes the panel, and ends every trouble. Without a page, as on a server, it does nothing.
 * @throws {WebMQError} `E_OPTION_INVALID` if there is no client.
 */
export function devtools({ client }: { readonly client?: GivenClient } = {}): () => void {
  const watched = clientOf(client)
  if (typeof document === 'undefined') return () => undefined
  const panel = watched.add((core) => new Devtools(watched, core))
  if (client === undefined) {
    if (ofSetup) panel.replace(ofSetup)
    ofSetup = panel
  }
  return panel.remove
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

  replace(previous: Devtools): void {
    this.#panel.isOpen = previous.#panel.isOpen
    previous.remove()
  }

  up(): void {
    this.#panel.refresh()
  }
}
