/** Where a service comes from. */
export type ServiceOrigin =
  | { readonly source: 'url'; readonly url: string }
  | { readonly source: 'binary' | 'package'; readonly file: string }
  | { readonly source: 'container'; readonly image: string }
