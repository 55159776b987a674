/** A signal for something that may take some time and no longer. */
export interface LimitedSignal {
  readonly signal: AbortSignal
  /** To be called when the thing has ended: lets go of the timer and of the other signal. */
  release(): void
}

/**
 * A signal that aborts with another one, or after a time.
 *
 * `AbortSignal.any([parent, AbortSignal.timeout(ms)])` looks the same and is not: in Node 20 nothing holds the inner signal, and once that is
 * garbage-collected its timer never fires.
 */
export function limitedSignal(parent: AbortSignal, limitMs: number): LimitedSignal {
  const controller = new AbortController()
  const abort = () =>
    controller.abort(parent.aborted ? parent.reason : new DOMException('it took too long', 'TimeoutError'))
  const timer = setTimeout(abort, limitMs)
  const release = () => {
    clearTimeout(timer)
    parent.removeEventListener('abort', abort)
  }
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  return { signal: controller.signal, release }
}
