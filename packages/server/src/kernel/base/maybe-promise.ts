/** A value now, or a promise of it: the embedded broker answers now, others later. */
export type MaybePromise<T> = T | Promise<T>

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return value instanceof Promise
}

/** Goes on with the value: before the call returns when it is there, so that nothing can come in between. */
export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? value.then(next) : next(value)
}

/** Calls `fail` with what `start` throws, or what its promise rejects with. */
export function catching<T>(start: () => MaybePromise<T>, fail: (error: unknown) => never): MaybePromise<T> {
  try {
    const value = start()
    return isPromise(value) ? value.catch(fail) : value
  } catch (error) {
    return fail(error)
  }
}
