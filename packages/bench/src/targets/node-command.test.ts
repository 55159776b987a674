import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { nodeCommand } from './node-command.js'

it('a peer has the C library of the machine, or that of a folder', () => {
  expect(nodeCommand('')).toEqual([process.execPath])
  const root = mkdtempSync(join(tmpdir(), 'webmq-bench-'))
  onTestFinished(() => {
    rmSync(root, { recursive: true })
  })
  expect(() => nodeCommand(root)).toThrow(`WEBMQ_BENCH_PEER_ROOT has no C library: ${root}`)
  const folder = join(root, 'usr', 'lib', 'aarch64-linux-gnu')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'ld-linux-aarch64.so.1'), '')
  const loader = join(folder, 'ld-linux-aarch64.so.1')
  expect(nodeCommand(root)).toEqual([loader, '--library-path', folder, process.execPath])
})
