import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withFileLock } from '../src/file-lock.js'

describe('a file lock', () => {
  it('lets one in at a time, and leaves no file', async () => {
    const file = lockFile()
    let inside = 0
    let most = 0
    const visit = () =>
      withFileLock(file, 5_000, async () => {
        most = Math.max(most, ++inside)
        await new Promise((resolve) => setImmediate(resolve))
        inside--
      })
    await Promise.all([visit(), visit(), visit()])
    expect(most).toBe(1)
    expect(existsSync(file)).toBe(false)
  })

  it('is free again after what it guarded has failed', async () => {
    const file = lockFile()
    await expect(withFileLock(file, 1_000, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await withFileLock(file, 1_000, () => Promise.resolve('in'))).toBe('in')
  })

  it('is taken over from a process that has died', async () => {
    const file = lockFile()
    const { pid } = spawnSync('true')
    writeFileSync(file, String(pid))
    expect(await withFileLock(file, 1_000, () => Promise.resolve('in'))).toBe('in')
  })

  it('is not taken from a process that lives', async () => {
    const file = lockFile()
    writeFileSync(file, String(process.pid))
    await expect(withFileLock(file, 200, () => Promise.resolve('in'))).rejects.toMatchObject({
      name: 'ServiceError',
    })
    expect(existsSync(file)).toBe(true)
  })
})

function lockFile(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return path.join(folder, 'lock')
}
