import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { DeliveredCount } from './delivered-count.js'

it('a delivered count is told by one and seen by the other, from zero on', () => {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-bench-'))
  const fds = [openSync(join(folder, 'count'), 'w+'), openSync(join(folder, 'count'), 'r')]
  onTestFinished(() => {
    for (const fd of fds) closeSync(fd)
    rmSync(folder, { recursive: true })
  })
  const [teller, looker] = fds.map((fd) => new DeliveredCount(fd))
  expect(looker?.look()).toBe(0)
  teller?.tell(1)
  expect(looker?.look()).toBe(1)
  teller?.tell(123_456_789_012)
  expect(looker?.look()).toBe(123_456_789_012)
})
