import { describe, expect, it } from 'vitest'
import { RunError } from './exit-codes.js'
import { importBeside, missingPackage } from './missing-package.js'

describe('a package that is not installed', () => {
  it('is named with the way to get it', () => {
    const text = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'webmq-server' imported from /x/webmq.mjs"
    expect(missingPackage(text)).toMatch(/npm install webmq-server; .*--url/)
    expect(missingPackage("Cannot find package 'webmq-services' imported")).toMatch(
      /npm install webmq-services; .*--url/,
    )
    expect(missingPackage('out of memory')).toBeUndefined()
  })

  it('is an error of the run, and other errors stay what they are', async () => {
    const name = 'no-such-package'
    await expect(importBeside(() => import(name), '--tls')).rejects.toThrow(RunError)
    const bug = new TypeError('a bug')
    await expect(importBeside(() => Promise.reject(bug), '--tls')).rejects.toBe(bug)
  })
})
