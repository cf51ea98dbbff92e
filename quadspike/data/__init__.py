"""Data sets from their official files, augmentation on the device, events, a simulated camera."""

from quadspike.data.augment import cifar_test, cifar_train
from quadspike.data.cifar import load_cifar10, load_cifar100
from quadspike.data.digits import load_digits, load_event_digits
from quadspike.data.events.aedat import read_aedat, write_aedat
from quadspike.data.events.cifar10dvs import load_cifar10dvs
from quadspike.data.events.folder import load_event_folder
from quadspike.data.events.form import Events
from quadspike.data.events.frames import to_frames
from quadspike.data.events.nmnist import load_nmnist, read_nmnist
from quadspike.data.events.transforms import dvs_test, dvs_train
from quadspike.data.folder import load_folder
from quadspike.data.imagenet import ImageNet
from quadspike.data.loader import Batch, Draw, Loader
from quadspike.data.split import Split
from quadspike.data.streaming import StreamingLoader

__all__ = [
    "Batch",
    "Draw",
    "Events",
    "ImageNet",
    "Loader",
    "Split",
    "StreamingLoader",
    "cifar_test",
    "cifar_train",
    "dvs_test",
    "dvs_train",
    "load_cifar10",
    "load_cifar10dvs",
    "load_cifar100",
    "load_digits",
    "load_event_digits",
    "load_event_folder",
    "load_folder",
    "load_nmnist",
    "read_aedat",
    "read_nmnist",
    "to_frames",
    "write_aedat",
]
