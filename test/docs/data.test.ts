import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { blocksFor } from './examples.js'

const { examples } = blocksFor(import.meta.url)

const isList = (code: string) => code.split('\n').every((line) => line.startsWith('{') && line.endsWith('}'))

it.each(examples(({ language }) => language === 'json'))('$page:$line is JSON, or a value per line', ({ code }) => {
  for (const text of isList(code) ? code.split('\n') : [code]) expect(JSON.parse(text)).toBeInstanceOf(Object)
})

it.each(examples(({ language }) => language === 'yaml'))('$page:$line is YAML', ({ code }) => {
  const documents = parseAllDocuments(code, { uniqueKeys: true })
  for (const { errors, contents } of documents) expect([errors, contents === null]).toEqual([[], false])
})
