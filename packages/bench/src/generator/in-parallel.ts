/**
 * Runs `task` for every item in order, at most `limit` at a time. Rejects with the first failure and starts no more.
 */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  task: (item: T) => Promise<void>,
): Promise<void> {
  const pending = items[Symbol.iterator]()
  let hasFailed = false
  const lane = async () => {
    for (const item of pending) {
      if (hasFailed) return
      try {
        await task(item)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane))
}
