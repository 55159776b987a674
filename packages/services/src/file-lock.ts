import { open, readFile, rename, rm } from 'node:fs/promises'
import { ServiceError } from './service-error.js'

const POLL_INTERVAL_MS = 100

/**
 * Runs a function while no other process runs one under the same lock file. It takes over the lock of a dead owner.
 * @param timeoutMs How long to wait for the others.
 * @throws {ServiceError} when the others take longer.
 */
export async function withFileLock<T>(file: string, timeoutMs: number, run: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + timeoutMs
  while (!(await tryLock(file))) {
    if (Date.now() > deadline) {
      throw new ServiceError(
        `${file} has been held by another process for ${timeoutMs / 1_000} s: end it, or remove the file`,
      )
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
  }
  try {
    return await run()
  } finally {
    await rm(file, { force: true })
  }
}

/**
 * Takes a lock if it is free; the new owner removes the file. Otherwise removes the lock of a dead owner, for the next
 * try.
 */
export async function tryLock(file: string): Promise<boolean> {
  try {
    const handle = await open(file, 'wx')
    await handle.writeFile(String(process.pid))
    await handle.close()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    await removeIfAbandoned(file)
    return false
  }
}

async function removeIfAbandoned(file: string): Promise<void> {
  const owner = await readFile(file, 'utf8').catch(() => '')
  // Empty: just taken, its owner not written yet.
  if (owner === '' || isRunning(Number(owner))) return
  // The rename succeeds for only one of the processes that see the dead owner, so nobody removes a newer lock.
  const aside = `${file}.${process.pid}`
  await rename(file, aside).catch(() => undefined)
  await rm(aside, { force: true })
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
