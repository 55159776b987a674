import { describe, expect, it } from 'vitest'
import { platformName } from './find.js'

describe('the name of a platform', () => {
  it.each([
    ['linux', 'x64', '2.36', 'linux-x64-gnu'],
    ['linux', 'arm64', undefined, 'linux-arm64-musl'],
    ['darwin', 'arm64', undefined, 'darwin-arm64'],
    ['win32', 'x64', undefined, 'win32-x64'],
  ])('of %s on %s with glibc %s is %s', (platform, arch, glibcVersionRuntime, name) => {
    expect(platformName({ platform, arch, report: { getReport: () => ({ header: { glibcVersionRuntime } }) } })).toBe(
      name,
    )
  })
})
