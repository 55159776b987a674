import { checks } from '../../core/checks.js'
import type { WebSocketConstructor } from '../../core/client-options.js'
import { socketClassOf } from '../../core/options.js'
import { Hub } from './hub.js'
import { portOf } from './port.js'
import { MAX_TAB_BYTES } from './shared-tabs.js'

/** Options of {@link serveTabs}. */
export interface ServeTabsOptions {
  /** As that of `sharedTabs`. */
  readonly maxTabBytes?: number
  /** The class of the connections to the server; default: the browser's. */
  readonly WebSocket?: WebSocketConstructor
}

/**
 * Holds the connections of all tabs of the origin. Call it in a shared worker, at the top of its script.
 */
export function serveTabs(options: ServeTabsOptions = {}): void {
  checks.part?.('serveTabs', options)
  const hub = new Hub({
    socketClass: socketClassOf(options),
    locks: navigator.locks,
    maxTabBytes: options.maxTabBytes ?? MAX_TAB_BYTES,
  })
  globalThis.addEventListener('connect', (event) => {
    const [port] = (event as MessageEvent).ports
    if (port) hub.accept(portOf(port))
  })
}
