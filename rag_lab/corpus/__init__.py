"""Files to documents, parents and children, and the index they are searched in; here what all of its rooms share.

Imports `stores` and what stands above it. Of its rooms, `load` and `split` know no other, `files` imports `load`, and
`index` imports all three.
"""
