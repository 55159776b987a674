import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LineWriter, noLines } from './line-writer.js'

let folder: string
let cleanups: (() => void)[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-lines-'))
  cleanups = [() => rmSync(folder, { recursive: true })]
})
afterEach(() => {
  for (const cleanup of cleanups.reverse()) cleanup()
})

function writerTo(file: string) {
  const writer = new LineWriter(file)
  cleanups.push(() => writer.close())
  return writer
}

/** A pipe whose reader is the test. */
function pipe() {
  const file = join(folder, 'pipe')
  execFileSync('mkfifo', [file])
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  let isOpen = true
  const close = () => {
    if (isOpen) closeSync(reader)
    isOpen = false
  }
  cleanups.push(close)
  const bytes = Buffer.alloc(65_536)
  const read = () => {
    try {
      return bytes.toString('utf8', 0, readSync(reader, bytes))
    } catch {
      return ''
    }
  }
  return { file, read, close }
}

const lineOf = (index: number) => `${index} ${'ä'.repeat(500)}\n`

describe('LineWriter', () => {
  it('writes lines in order, and counts them once they are written', async () => {
    const [file, counts] = [join(folder, 'log'), noLines()]
    const writer = writerTo(file)
    for (let index = 0; index < 1_000; index++) writer.write(lineOf(index), counts)
    expect(counts.writtenCount).toBe(0)
    expect(await writer.flush(10_000)).toBe(true)
    expect(counts).toEqual({ writtenCount: 1_000, droppedCount: 0, waitingBytes: 0 })
    expect(readFileSync(file, 'utf8')).toBe(Array.from({ length: 1_000 }, (_, index) => lineOf(index)).join(''))
  })

  // Symptom: a process that ended with lines that nobody took had lost none of them. Cause: the last writes were not counted.
  it('counts what the last writes of a process have lost', async () => {
    const [{ file, read }, counts] = [pipe(), noLines()]
    const writer = writerTo(file)
    for (let index = 0; index < 1_000; index++) writer.write(lineOf(index), counts)
    expect(await writer.flush(100)).toBe(false)
    let lostCount = writer.flushSync(10)
    expect(lostCount).toBe(counts.droppedCount)
    // The pipe holds 64 KiB, and a write as much.
    expect(counts.droppedCount).toBeGreaterThan(850)
    // Lines of a write that has not ended are not counted yet.
    const total = () => {
      lostCount += writer.flushSync(10)
      return counts.writtenCount + counts.droppedCount
    }
    await expect.poll(total).toBe(1_000)
    expect(lostCount).toBe(counts.droppedCount)
    expect(counts.waitingBytes).toBe(0)
    expect(read().split('\n').length - 1).toBeLessThanOrEqual(counts.writtenCount)
  })

  it('keeps lines for a slow reader, drops those beyond 4 MiB, and goes on in the middle of a line', async () => {
    const [{ file, read }, counts] = [pipe(), noLines()]
    const writer = writerTo(file)
    for (let index = 0; index < 6_000; index++) writer.write(lineOf(index), counts)
    await expect.poll(() => counts.waitingBytes).toBeGreaterThan(4_000_000)
    expect(counts.droppedCount).toBeGreaterThan(1_500)
    let text = ''
    await expect
      .poll(
        () => {
          for (let part = read(); part !== ''; part = read()) text += part
          return counts.waitingBytes
        },
        { interval: 2 },
      )
      .toBe(0)
    for (let part = read(); part !== ''; part = read()) text += part
    expect(counts.writtenCount + counts.droppedCount).toBe(6_000)
    expect(text).toBe(Array.from({ length: counts.writtenCount }, (_, index) => lineOf(index)).join(''))
  })

  it('drops lines at once when nobody reads the pipe any more', async () => {
    const [{ file, close }, counts] = [pipe(), noLines()]
    const writer = writerTo(file)
    close()
    for (let index = 0; index < 10; index++) writer.write(lineOf(index), counts)
    await expect.poll(() => counts).toEqual({ writtenCount: 0, droppedCount: 10, waitingBytes: 0 })
  })

  it('refuses a pipe that nobody reads', () => {
    const { file, close } = pipe()
    close()
    expect(() => writerTo(file)).toThrow('ENXIO')
  })

  it('waits after `reopen` until there is a file to write to, and leaves the old one alone', async () => {
    const [file, counts] = [join(folder, 'log'), noLines()]
    const errors: unknown[] = []
    const writer = new LineWriter(file, (error) => errors.push(error))
    cleanups.push(() => writer.close())
    renameSync(folder, `${folder}.old`)
    cleanups.push(() => rmSync(`${folder}.old`, { recursive: true, force: true }))
    writer.reopen()
    writer.write('a\n', counts)
    await expect.poll(() => errors).not.toEqual([])
    expect(counts.waitingBytes).toBe(2)
    renameSync(`${folder}.old`, folder)
    renameSync(file, `${file}.1`)
    await expect.poll(() => counts.writtenCount).toBe(1)
    expect(readFileSync(`${file}.1`, 'utf8')).toBe('')
    expect(readFileSync(file, 'utf8')).toBe('a\n')
  })

  it('writes without the event loop at the end, and waits a limited time for a reader', () => {
    const [{ file, read }, counts] = [pipe(), noLines()]
    const writer = writerTo(file)
    for (let index = 0; index < 1_000; index++) writer.write(lineOf(index), counts)
    const sinceMs = performance.now()
    writer.flushSync(100)
    expect(performance.now() - sinceMs).toBeLessThan(1_000)
    expect(read().length).toBeGreaterThan(10_000)
  })
})
