import { describe, expect, it } from 'vitest'
import { type LoadedUws, loadUws } from './load-uws.js'

const NEWER = '@btc-vision/uwebsockets.js'
const OLDER = 'uWebSockets.js'

/** Packages that load; the others fail as a build for a newer C library does. */
const only = (...names: readonly string[]) => {
  return (name: string): LoadedUws => {
    if (names.includes(name)) return { uws: name, version: `${name} 1` }
    throw new Error(`Only these are supported.\n\nError: libc.so.6: \`GLIBC_2.38' not found (required by /a/${name})`)
  }
}

describe('the uWebSockets.js that plays', () => {
  it('is the newer one where both load', () => {
    expect(loadUws(undefined, only(NEWER, OLDER))).toEqual({ uws: NEWER, version: `${NEWER} 1` })
  })

  it('is the older one where the newer one does not load, and says why', () => {
    const version = `${OLDER} 1, because ${NEWER} does not load: Error: libc.so.6: \`GLIBC_2.38' not found`
    expect(loadUws(undefined, only(OLDER))).toEqual({ uws: OLDER, version })
  })

  it('is the one that was named, and no other', () => {
    expect(loadUws(OLDER, only(NEWER, OLDER))).toEqual({ uws: OLDER, version: `${OLDER} 1` })
    expect(() => loadUws(NEWER, only(OLDER))).toThrow(`${NEWER} does not load`)
  })

  it('is none where none loads, with the reasons of all', () => {
    expect(() => loadUws(undefined, only())).toThrow(/^@btc.* not found\nuWeb.* not found$/)
  })

  it('is installed here, in the build that every supported C library loads', () => {
    expect(loadUws(OLDER).version).toMatch(/^uWebSockets\.js \(@rjweb\/uws 1\.5\.0\)/)
  })
})
