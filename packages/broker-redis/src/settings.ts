import { Redis } from 'ioredis'

/**
 * What a Redis runs with, whatever stands in its file: settings of `CONFIG GET`, and members of `INFO persistence`. For
 * `webmq-server doctor --production`.
 * @param url With the password.
 * @param names Of settings and members.
 * @returns Those that the server has, by their names.
 * @throws the error of the connection, of the password, or of a question.
 */
export async function readRedisSettings(
  url: string,
  names: readonly string[],
  timeoutMs: number,
): Promise<Readonly<Record<string, string>>> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    disableClientInfo: true,
    // As in RedisConnection: otherwise a timer of two seconds outlives a connection that was refused.
    disconnectTimeout: 0,
  })
  let cause: unknown
  // The calls reject with less than it says.
  redis.on('error', (error) => {
    cause ??= error
  })
  try {
    await redis.connect()
    const known = new Map<string, string>()
    for (const [, name = '', value = ''] of (await redis.info('persistence')).matchAll(/^(\w+):(.*?)\r?$/gm))
      known.set(name, value)
    for (const name of names) {
      // Before version 7, a question has one name.
      const answer = await redis.config('GET', name)
      if (Array.isArray(answer) && answer.length === 2) known.set(name, String(answer[1]))
    }
    return Object.fromEntries([...known].filter(([name]) => names.includes(name)))
  } catch (error) {
    throw cause ?? error
  } finally {
    redis.disconnect()
  }
}
