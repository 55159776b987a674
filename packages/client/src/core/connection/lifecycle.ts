import type { Lifecycle } from '../client-options.js'

/**
 * Observes online/offline, visibility, back/forward cache and freezing. Returns a function that stops it.
 *
 * It does not use `beforeunload` and `unload`: a page with such handlers loses the back/forward cache, and sockets
 * close with their page anyway.
 * @param wake The network or the page is back, or another network.
 * @param restore The page returned from the back/forward cache.
 */
export function watchLifecycle(wake: () => void, restore: () => void, environment: Lifecycle): () => void {
  const { document } = environment
  const controller = new AbortController()
  const on = (target: Lifecycle['document'], event: string, listener: (event: Event) => unknown) =>
    target?.addEventListener?.(event, listener, { signal: controller.signal })
  on(environment, 'online', wake)
  // After `offline` the socket may be dead or, on another network, alive: check it.
  on(environment, 'offline', wake)
  on(environment, 'pageshow', (event) => (event as PageTransitionEvent).persisted && restore())
  on(document, 'visibilitychange', () => document?.visibilityState === 'visible' && wake())
  on(document, 'resume', wake)
  return () => controller.abort()
}

/** Whether to make no attempts: the page is hidden and offline. `online` or showing the page wakes the client. */
export function isDormant(environment: Lifecycle): boolean {
  return environment.document?.visibilityState === 'hidden' && isOffline(environment)
}

/** Whether the browser says that it has no network. It may be wrong, and a server on this machine is reached without. */
export function isOffline({ navigator }: Lifecycle): boolean {
  return navigator?.onLine === false
}
