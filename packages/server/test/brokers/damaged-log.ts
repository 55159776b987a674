import { execFile } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect, promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Broker, Position } from '../../src/kernel/ports/broker.js'
import { type Keeping, type Kind, nodesOf, publish, RECOVERY } from './lost-end.js'

interface Damage {
  readonly name: string
  change(bytes: Buffer): Uint8Array
}

function flipped(bytes: Buffer, at: number): Buffer {
  // A server of a cluster may have written nothing yet.
  if (at > 0) bytes.writeUInt8(bytes.readUInt8(at) ^ 0xff, at)
  return bytes
}

const DAMAGES: readonly Damage[] = [
  { name: 'is cut at a byte near its end', change: (bytes) => bytes.subarray(0, -7) },
  { name: 'is cut in its middle', change: (bytes) => bytes.subarray(0, Math.floor(bytes.length / 2)) },
  { name: 'has a flipped byte near its end', change: (bytes) => flipped(bytes, bytes.length - 30) },
  { name: 'has a flipped byte in its middle', change: (bytes) => flipped(bytes, Math.floor(bytes.length / 2)) },
  { name: 'is whole', change: (bytes) => bytes },
]

const PUBLISHED = 60
const TOTAL = 80

/** RabbitMQ takes nothing while less than 50 MB are free. */
const DISK_BYTES = 160 * 1_048_576
const FILL_BYTES = 65_536
const PADDED_CHARS = 1_000
const RECOVERY_MS = 20_000

interface Read {
  readonly numbers: readonly number[]
  readonly gap: string | undefined
}

async function readSince(broker: Broker, since: Position | undefined): Promise<Read> {
  const { messages, gap } = await broker.read(since === undefined ? {} : { since }, ['#'])
  return { numbers: messages.map(({ payload }) => Number(Buffer.from(payload).toString())), gap }
}

async function whoIsToldNothing(broker: Broker, given: readonly Position[]): Promise<string[]> {
  const wrong: string[] = []
  for (const [index, since] of given.entries()) {
    const { numbers, gap } = await readSince(broker, since)
    const missed = Array.from({ length: TOTAL }, (_, at) => at + 1).slice(index + 1)
    if (gap === undefined && String(numbers) !== String(missed)) wrong.push(`${index + 1}`)
  }
  return wrong
}

/**
 * All nodes and the broker go at once, and the file that the log was written to comes back damaged. A listener that comes back
 * is told a gap, or gets everything. A broker that does not start with the damage, or takes no messages, gets an empty disk.
 */
export function damagedLogSuite(kind: Kind, isShort = false): void {
  describe(`a log at ${kind.name}, after all nodes and the broker went at once,`, () => {
    let service: Keeping
    beforeAll(async () => {
      service = await kind.start()
    })
    afterAll(() => service.stop())

    it.each(isShort ? DAMAGES.slice(0, 1) : DAMAGES)(
      'tells whoever comes back a gap, or has everything, when its file $name',
      async ({ name, change }) => {
        const startNode = nodesOf(kind, service)
        const nodes = [await startNode(), await startNode()] as const
        const given = [...(await publish(nodes[0], 1, 31)), ...(await publish(nodes[1], 31, PUBLISHED + 1))]
        await kind.settled?.()
        await Promise.all([service.damageLog?.(change), ...nodes.map((node) => node.stop(0))])
        const goOn = async () => {
          const node = await startNode()
          // It may have stored a message that it never brings.
          await publish(node, PUBLISHED + 1, TOTAL + 1).catch(async (cause: unknown) => {
            await vi.waitFor(() => expect(node.gaps).toContain('refused'), RECOVERY)
            await node.stop(0)
            throw cause
          })
          return node
        }
        const after = await service
          .restart()
          .then(goOn)
          .catch(async (cause: unknown) => {
            if (cause instanceof Error && cause.name === 'AssertionError') throw cause
            console.info(`${kind.name} does not survive that its log ${name}: ${String(cause).slice(0, 300)}`)
            await service.wipe?.()
            return await goOn()
          })
        for (const broker of [after, await startNode()]) expect(await whoIsToldNothing(broker, given)).toEqual([])
      },
      180_000,
    )

    if (isShort) return

    // Redis refuses, RabbitMQ blocks, and JetStream is off until its server is restarted.
    it('has what was accepted, or tells a gap, when its disk was full and has room again', async ({ skip }) => {
      const disk = await mountDisk()
      if (disk === undefined) return skip('only root mounts a disk')
      const full = await kind.start({ dataParent: disk })
      onTestFinished(() => full.stop())
      const startNode = nodesOf(kind, full)
      const nodes = [await startNode(), await startNode()] as const
      const accepted = new Map<number, Position>()
      const publishSome = async (from: number, to: number) => {
        const publishes = Array.from({ length: to - from }, async (_, at) => {
          const number = from + at
          const payload = Buffer.from(`${number}`.padEnd(PADDED_CHARS))
          const node = nodes[number % 2] as (typeof nodes)[0]
          const { position } = await node.publish({ key: 'busy.one', payload, isBinary: false })
          if (position !== undefined) accepted.set(number, position)
        })
        return (await Promise.allSettled(publishes)).flatMap((each) =>
          each.status === 'rejected' ? [each.reason] : [],
        )
      }
      expect(await publishSome(0, 50)).toEqual([])
      await kind.settled?.()
      const filler = path.join(disk, 'filler')
      await fill(filler)
      for (const from of [100, 500]) await publishSome(from, from + 300)
      await rm(filler)
      const publishOne = async (number: number) => {
        const endMs = performance.now() + RECOVERY_MS
        for (;;) {
          const [cause] = await publishSome(number, number + 1)
          if (cause === undefined) return
          if (performance.now() > endMs) throw cause
          await sleep(500)
        }
      }
      const goOn = async () => {
        await publishOne(1_000).catch(async () => {
          console.info(`${kind.name} needs a restart after its disk was full`)
          await full.restart()
          await publishOne(2_000)
        })
        await Promise.all([full.restart(), ...nodes.map((node) => node.stop(0))])
        return await startNode()
      }
      const after = await goOn().catch(async (cause: unknown) => {
        const [words] = kind.afterFullDisk?.says.exec(inspect(cause)) ?? []
        if (words === undefined) throw cause
        console.info(`${kind.name} does not survive that its disk was full: ${words}`)
        await Promise.all(nodes.map((node) => node.stop(0)))
        await kind.afterFullDisk?.repair(full)
        return await startNode()
      })
      await after.publish({ key: 'busy.one', payload: Buffer.from('3000'), isBinary: false })
      const log = [...accepted].sort(([, a], [, b]) => a.offset - b.offset)
      const wrong: string[] = []
      for (const [index, [number, since]] of log.entries()) {
        const { numbers, gap } = await readSince(after, since)
        const got = new Set(numbers)
        const lost = [...log.slice(index + 1).map(([later]) => later), 3_000].filter((later) => !got.has(later))
        if (gap === undefined && lost.length > 0) wrong.push(`after ${number}: ${lost.length}, from ${lost[0]}`)
      }
      console.info(`${kind.name}: ${accepted.size} accepted`)
      expect(wrong).toEqual([])
    }, 300_000)
  })
}

/** A disk of its own, until the test ends; `undefined` where this user may not mount one. */
async function mountDisk(): Promise<string | undefined> {
  const folder = await mkdtemp(path.join(tmpdir(), 'webmq-disk-'))
  const run = promisify(execFile)
  const isMounted = await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', folder]).then(
    () => true,
    () => false,
  )
  onTestFinished(async () => {
    if (isMounted) await run('umount', ['--lazy', folder])
    await rm(folder, { recursive: true })
  })
  return isMounted ? folder : undefined
}

async function fill(file: string): Promise<void> {
  const handle = await open(file, 'w')
  try {
    const bytes = Buffer.alloc(FILL_BYTES)
    for (;;) await handle.write(bytes)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') throw cause
  } finally {
    await handle.close()
  }
}
