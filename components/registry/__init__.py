"""The model registry: the folder that models are pushed to, ``<root>/<name>/<version>/``.

There is no server and no database. A version is a folder with a whole number for a name that
holds a SavedModel; ``regard.json`` beside the model says where it came from. TensorFlow Serving
watches the same folder, so what is here is what is served: of each model the highest number.

Numbers only rise. Whatever changes what is served publishes a new version, also where it goes back
to an old one, and a version that is there never changes. So each change is one rename, and a
server that looks at any moment finds whole versions only.
"""

from components.registry.records import RECORD, read_record
from components.registry.versions import MODEL_FILE, PROFILE, Registry, numbered

__all__ = ["MODEL_FILE", "PROFILE", "RECORD", "Registry", "numbered", "read_record"]
