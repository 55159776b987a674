/** A signal for a call with a time limit. Dispose of it when the call has ended. */
export interface LimitedSignal extends Disposable {
  readonly signal: AbortSignal
  /** Aborts it before. */
  abort(reason: unknown): void
}

/**
 * A signal that aborts with its parent, or after a time.
 *
 * `AbortSignal.any([parent, AbortSignal.timeout(ms)])` does not work in Node 20: nothing keeps the inner signal alive,
 * and once it is garbage-collected its timer never fires.
 */
export function limitedSignal(parent: AbortSignal, limitMs: number): LimitedSignal {
  const controller = new AbortController()
  const abort = () =>
    controller.abort(parent.aborted ? parent.reason : new DOMException('it took too long', 'TimeoutError'))
  const timer = setTimeout(abort, limitMs)
  const dispose = () => {
    clearTimeout(timer)
    parent.removeEventListener('abort', abort)
  }
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), [Symbol.dispose]: dispose }
}
