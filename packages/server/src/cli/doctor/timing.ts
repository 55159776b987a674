/** Milliseconds since a time of `performance.now()`, for people. */
export function elapsedMs(sinceMs: number): number {
  const ms = performance.now() - sinceMs
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)
}

/** Rejects when a promise takes longer. */
export async function withTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    clearTimeout(timer)
  }
}
