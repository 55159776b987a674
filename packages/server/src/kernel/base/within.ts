/**
 * Waits for a promise, but not longer than `limitMs`. The promise itself goes on.
 * @returns Whether it was fulfilled in time.
 * @throws what the promise rejects with in time.
 */
export async function within(promise: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs)
  })
  try {
    return await Promise.race([promise.then(() => true), limit])
  } finally {
    clearTimeout(timer)
  }
}
