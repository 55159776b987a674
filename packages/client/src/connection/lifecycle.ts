/** What a page, or whatever else runs the client, tells about its life. */
export interface LifecycleContext {
  /** The network or the page is back: whatever waits may try, whatever looks alive must prove it. */
  onWake(): void
  /** The page was in the back/forward cache; browsers cut its connections without saying so. */
  onRestore(): void
}

/** The part of the environment that is watched; all of it may be missing, as in Node or Workers. */
export interface LifecycleEnvironment {
  readonly addEventListener?: EventTarget['addEventListener'] | undefined
  readonly document?: (EventTarget & { readonly visibilityState?: string }) | undefined
  readonly navigator?: { readonly onLine?: boolean } | undefined
}

/**
 * Watches online/offline, visibility, back/forward cache and freezing. Returns what ends the watch.
 *
 * `beforeunload` and `unload` are left alone on purpose: a page that asks for them loses the back/forward cache, and a
 * socket needs no help to close with its page.
 */
export function watchLifecycle(context: LifecycleContext, environment: LifecycleEnvironment = globalThis): () => void {
  const { document } = environment
  const wake = () => context.onWake()
  const show = () => document?.visibilityState === 'visible' && wake()
  const restore = (event: Event) => 'persisted' in event && event.persisted && context.onRestore()
  const controller = new AbortController()
  const on = (target: Partial<EventTarget> | undefined, event: string, listener: (event: Event) => unknown) =>
    target?.addEventListener?.(event, listener, { signal: controller.signal })
  on(environment as Partial<EventTarget>, 'online', wake)
  // After `offline` the socket may be dead or, on another network, alive: ask it.
  on(environment as Partial<EventTarget>, 'offline', wake)
  on(environment as Partial<EventTarget>, 'pageshow', restore)
  on(document, 'visibilitychange', show)
  on(document, 'resume', wake)
  return () => controller.abort()
}

/** Whether to leave the network alone: nobody looks at the page, and there is none. `online` or showing it wakes us. */
export function isDormant({ document, navigator }: LifecycleEnvironment = globalThis): boolean {
  return document?.visibilityState === 'hidden' && navigator?.onLine === false
}
