import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { linkedCrates, metadataOf } from './crates-of.mjs'

const LICENCE_FILE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i
const STANDARD_LIBRARY = `The standard library of Rust is linked, too: Copyright The Rust Project Contributors, under the licences MIT and
Apache-2.0. Both texts are below, with crates that have them.`

/**
 * The licence texts of the crates that are linked into a program: their licences want them to go along.
 * @param {string} manifest of the program's workspace, relative to the repository
 * @param {string} program name of the package that is linked
 * @returns {string} the text of the file
 * @throws when cargo cannot be run, or a crate has no licence file and no licence.
 */
export function noticesOf(manifest, program) {
  const crates = linkedCrates(metadataOf(manifest), program).filter(({ source }) => source !== null)
  const crateNamesByText = new Map()
  for (const crate of crates) {
    for (const text of licenceTexts(crate)) {
      crateNamesByText.set(text, [...(crateNamesByText.get(text) ?? []), `${crate.name} ${crate.version}`])
    }
  }
  const parts = [...crateNamesByText].map(([text, names]) => `${names.join(', ')}\n\n${text}`)
  return `${[`Crates that are linked into this program, and their licences.\n\n${STANDARD_LIBRARY}`, ...parts].join(RULE)}\n`
}

const RULE = `\n\n${'-'.repeat(80)}\n\n`

function licenceTexts({ name, license, manifest_path: manifest }) {
  const folder = path.dirname(manifest)
  const files = readdirSync(folder, { withFileTypes: true }).filter(
    (file) => file.isFile() && LICENCE_FILE.test(file.name),
  )
  if (files.length > 0) return files.map((file) => readFileSync(path.join(folder, file.name), 'utf8').trim())
  if (license === null) throw new Error(`crate ${name} names no licence`)
  return [`Licence: ${license}. The crate has no file with its text.`]
}
