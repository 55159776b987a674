import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { groupsOf } from './pages.ts'
import { type Site, twinOf } from './render.ts'

/**
 * Writes what programs read: `llms.txt`, the list of the pages; `llms-full.txt`, the text of those that users need; and
 * each page as Markdown beside its HTML (https://llmstxt.org).
 */
export function writeTexts(site: Site, folder: string): void {
  const write = (name: string, text: string) => {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  for (const page of site.pages) write(`${page.route}.md`, twinOf(site, page))
  const groups = groupsOf(site.pages)
  const home = site.pages.find(({ route }) => route === 'index')
  const sections = groups.map(({ text, isOptional, pages }) => {
    const rows = pages.map(({ title, route, summary }) => `- [${title}](${route}.md): ${summary}`)
    return `## ${isOptional ? `Optional: ${text}` : text}\n\n${rows.join('\n')}\n`
  })
  write('llms.txt', `# ${home?.title}\n\n> ${home?.summary}\n\n${sections.join('\n')}`)
  const needed = groups.filter(({ isOptional }) => !isOptional).flatMap(({ pages }) => pages)
  write('llms-full.txt', needed.map((page) => twinOf(site, page, '')).join('\n\n---\n\n'))
}
