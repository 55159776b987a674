import { describe, expect, it } from 'vitest'
import { MANIFEST } from './manifest.js'
import { installedVersion, isWithin, unsupportedVersion } from './supported-versions.js'

describe('the versions of libraries', () => {
  it.each([
    ['5.4.0', true],
    ['5.10.0', true],
    ['6.99.0', true],
    ['5.3.9', false],
    ['0.10.9', false],
    ['7.0.0', false],
    ['10.0.0', false],
  ])('%s is within >=5.4.0 <7.0.0: %s', (version, isSupported) => {
    expect(isWithin(version, '>=5.4.0 <7.0.0')).toBe(isSupported)
  })

  it('says which version is installed, and which one is wanted', () => {
    const range = MANIFEST.supportedPeers['@opentelemetry/api']
    expect(unsupportedVersion('@opentelemetry/api', () => '1.0.4')).toEqual({
      reason: `@opentelemetry/api ${range}, but 1.0.4 is installed`,
      wanted: `"@opentelemetry/api@${range}"`,
    })
  })

  it.each(Object.keys(MANIFEST.supportedPeers))('reads the version of %s that is installed here', (name) => {
    expect(installedVersion(name)).toMatch(/^\d+\.\d+\.\d+/)
    expect(unsupportedVersion(name)).toBeUndefined()
  })

  it('lets a library be that nothing is known of', () => {
    expect(unsupportedVersion('webmq-library-that-nobody-has')).toBeUndefined()
    expect(unsupportedVersion('@opentelemetry/api', () => undefined)).toBeUndefined()
  })
})
